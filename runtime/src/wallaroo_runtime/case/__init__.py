"""Reads and runs the case folders of `wallaroo test`, in this process."""
