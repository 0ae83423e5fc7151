"""Links over bad networks: delay, loss, narrow pipes and silence, made inside this process."""
