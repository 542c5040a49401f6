"""Planning the next log: how much randomness to show, what it costs, and how soon such a log decides."""
