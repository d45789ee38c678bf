"""The recipes: how one run trains. Each is a module with one `Trainer`."""
