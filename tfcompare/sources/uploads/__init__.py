"""Profiles uploaded by browser: checked, unpacked and stored in the user's data folder."""

from tfcompare.sources.abandoned_folders import clean, session_owner
from tfcompare.sources.uploads.limits import BadUpload, Limits
from tfcompare.sources.uploads.quotas import Quotas
from tfcompare.sources.uploads.receiving import Arrival, Upload, Uploads

__all__ = ["Arrival", "BadUpload", "Limits", "Quotas", "Upload", "Uploads", "clean", "session_owner"]
