package words

// SealLayer is the command that seals a layer of "spectrum run".
func SealLayer(path, over string) string {
	return "spectrum seal --upper " + Shell(path+"/changed") + " --lower " + Shell(over)
}

// RemoveLayer is the command that removes such a layer, in which directories may be barred.
func RemoveLayer(path string) string {
	return "chmod -R u+rwX " + Shell(path) + " && rm -rf " + Shell(path)
}
