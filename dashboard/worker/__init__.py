"""The work: relay, dispatch, reconcile, sweep, roll up. Never renders a page, never imports Flask."""
