"""What ran on the GPU, by the records that it keeps."""
