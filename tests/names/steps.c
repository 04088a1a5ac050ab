/* As interpreters are that call from instruction to instruction instead of going round a loop. */
__attribute__((noinline)) static int _TAIL_CALL_NOP(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value * 5;
}

int _PyEval_EvalFrameDefault(int value)
{
	return _TAIL_CALL_NOP(value) + 1;
}
