"""Reads and writes the files of journal, staging and outbox, or calls the services that have them."""
