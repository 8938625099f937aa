"""What a worker needs besides the page: documents it refers to, services, plug-ins. See `quadloom.phases.outside`."""

from quadloom.phases.outside import all_syntaxes, document_loader

__all__ = ["all_syntaxes", "document_loader"]
