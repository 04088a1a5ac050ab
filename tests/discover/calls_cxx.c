/* A function of a library that is C, and may throw all the same. */
extern void *new (unsigned long bytes) __asm__("_Znwm");

void *calls_cxx(void);

void *calls_cxx(void)
{
	return new (1);
}
