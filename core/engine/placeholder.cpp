// replaced by the first file of this folder
