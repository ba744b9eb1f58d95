"""The jobs: graphs that only compose the parties' transforms, their options, their files, and the command line."""
