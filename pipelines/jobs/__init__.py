"""The jobs: each composes the parties' transforms, and reads and writes their files."""
