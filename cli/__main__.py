"""`python -m townhall.cli`, where the console script is not on the path."""

from __future__ import annotations

import sys

from .main import main

sys.exit(main())
