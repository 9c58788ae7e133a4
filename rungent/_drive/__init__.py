"""The trio shell around the pure core: performs actions, keeps deadlines, commits outcomes."""
