"""Profiles uploaded by browser: checked, unpacked and stored in the user's data folder."""

from tfcompare.server.uploads.limits import BadUpload, Limits
from tfcompare.server.uploads.quotas import Quotas
from tfcompare.server.uploads.receiving import Arrival, Upload, Uploads
from tfcompare.sources.abandoned_folders import clean, session_owner

__all__ = ["Arrival", "BadUpload", "Limits", "Quotas", "Upload", "Uploads", "clean", "session_owner"]
