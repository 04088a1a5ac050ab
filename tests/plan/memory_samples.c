/* Reporters of memory as compilers may write them: where the site must be is in the name of a label. */
#define FUNCTION(name, body)                                                                       \
	__asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name                       \
		":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ",.-" #name "\n");

#ifdef WITHOUT_ENDS
FUNCTION(PyTraceMalloc_Track, "push %rbx\npop %rbx\nret")
FUNCTION(_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm, "push %rbx\npop %rbx\nret")
#else
/* An argument has been overwritten at the push. */
FUNCTION(PyTraceMalloc_Track,
	 ".globl site_track\nsite_track: xor %edi,%edi\npush %rbx\npop %rbx\nret")
FUNCTION(Py_FinalizeEx, ".globl site_finalize\nsite_finalize: push %rbx\npop %rbx\nret")
FUNCTION(Py_Exit, ".globl site_exit\nsite_exit: push %rbx\npop %rbx\nret")
FUNCTION(PyTraceMalloc_Untrack,
	 "endbr64\ncmpl $1,0x100(%rip)\n.globl site_untrack\nsite_untrack: je 1f\n1: ret")
/* So is half of one, or one that is moved. */
FUNCTION(_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm,
	 ".globl site_new\nsite_new: mov $1,%dh\npush %rbx\npop %rbx\nret")
FUNCTION(_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv,
	 "mov %rsi,%rax\nmov %rdi,%r10\n.globl site_delete\nsite_delete: push %rbx\npop %rbx\nret")
FUNCTION(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE,
	 "mov 0x100(%rip),%rax\n.globl site_device\nsite_device: push %r14\npop %r14\nret")
FUNCTION(_ZN2at6native5copy_ERNS_6TensorERKS1_b,
	 "mov %rdx,%rax\n.globl site_copy\nsite_copy: push %r14\npop %r14\nret")
FUNCTION(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE,
	 ".globl site_full\nsite_full: xchg %rax,%rcx\npush %r14\npop %r14\nret")
#endif
/* These only begin so. */
FUNCTION(PyTraceMalloc_TrackAll, "push %rbx\npop %rbx\nret")
