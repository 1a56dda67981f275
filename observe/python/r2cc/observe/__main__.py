"""python3 -m r2cc.observe: the program r2cc-observe."""

import sys

from ._tool import main

sys.exit(main())
