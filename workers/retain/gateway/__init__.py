"""The tool proxy: API key in, upstream answer out. It reads only KV."""
