"""The MCP server: what commands answer, as tools for agents. It needs the extra `mcp`."""
