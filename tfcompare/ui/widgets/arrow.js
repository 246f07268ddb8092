// The columns of a frame that Streamlit sends, as typed arrays by their names.
const columns = (table) => Object.fromEntries(table.schema.fields.map(({ name }) => [name, table.getChild(name).toArray().slice()]));
