"""Content of the demo: one or more modules per project, and the files that its sessions write."""
