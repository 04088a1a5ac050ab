/* How the names of ranges begin that PyTorch opens by itself, through the functions that users
 * call too (foreign_ranges.h). X(beginning) for each. Also for clang -target bpf. */
#ifndef RLS_LIBRARY_RANGES_H
#define RLS_LIBRARY_RANGES_H

#define RLS_LIBRARY_RANGES(X)                                                                      \
	X("Optimizer.step#")                                                                       \
	X("Optimizer.zero_grad#")                                                                  \
	X("enumerate(DataLoader)#")                                                                \
	X("DataParallel.forward")                                                                  \
	X("DistributedDataParallel.")                                                              \
	X("FullyShardedDataParallel.")                                                             \
	X("FSDP::")                                                                                \
	X("ProfilerStep#")                                                                         \
	X("## ")

#endif
