"""Jobs that compose the parties' transforms into graphs, with their options and files; and the command line."""

DEPLOYMENT = "deployment.toml"
"""The deployment file that commands find in the working directory."""
