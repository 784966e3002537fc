// Package doctor looks at what spectrum needs of a machine: the kernel, the means to mount,
// views whose server has died, the state directory, and the file systems of restore roots.
// What is not well it returns with what follows from it and with what to do ([Check]).
package doctor
