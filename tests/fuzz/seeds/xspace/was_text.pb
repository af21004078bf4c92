
��/device:TPU:0�