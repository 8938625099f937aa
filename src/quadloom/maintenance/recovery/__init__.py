"""What protects a warehouse from loss: backups and restoring them, and recovery from the archive alone.

In: a warehouse whose database may be lost or damaged, or a place for copies. Out: copies, or a whole warehouse.
May import: maintenance, ingest, stores, model, settings.
"""
