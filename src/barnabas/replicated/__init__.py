"""The write loop shared by the controller and both coordinators: decide, append, apply, wait for the high watermark."""
