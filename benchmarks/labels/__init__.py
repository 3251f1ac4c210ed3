"""What a few labels of the target are worth: ``TargetCorrection``, its choice of candidates, and simple methods."""
