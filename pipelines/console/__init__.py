"""The console: options, tables and messages that the commands share."""
