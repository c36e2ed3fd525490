"""The program that assistants and git run for an event. See `event_recorder` for its arguments.

Python compiles a program at each start, but not the modules that it imports. So this file is small.
"""

import os
import sys

if __name__ == "__main__":
    # Last, so that no installed package replaces a module of the standard library.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
    from backscroll.hooks.event_recorder import main

    main()
