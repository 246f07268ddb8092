"""What pages show, as blocks: data that every renderer shows in its own way."""
