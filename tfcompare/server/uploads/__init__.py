"""Profiles uploaded by browser: checked, unpacked and stored in the user's data folder."""

from tfcompare.server.uploads.limits import BadUpload, Limits
from tfcompare.server.uploads.quotas import Quotas, clean, session_owner
from tfcompare.server.uploads.receiving import Arrival, Upload, Uploads

__all__ = ["Arrival", "BadUpload", "Limits", "Quotas", "Upload", "Uploads", "clean", "session_owner"]
