"""Where runs come from: folders, URLs, uploads and live programs; and what a run is called."""
