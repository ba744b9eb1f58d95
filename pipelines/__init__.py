"""The jobs: graphs that only compose the parties' transforms, their options, their files, and the command line."""

DEPLOYMENT = "deployment.toml"
"""The deployment file that commands find in the working directory."""
