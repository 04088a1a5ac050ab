#include "cupti_bridge/calls.h"

#include <stddef.h>

#include "cupti_bridge/batch.h"

/* CUDA 13.2 has 558 of the runtime and 845 of the driver, and each release adds some twenty. */
#define CALLS_MAX 1024

struct range {
	uint16_t first, last;
};

/* CUPTI's numbers, which are never given twice; the names are those of the first and last. */
static const struct range runtime[] = {
	{13, 13}, /* cudaLaunch */
	{31, 52}, /* cudaMemcpy … cudaMemset2DAsync */
	{126, 126}, /* cudaThreadSynchronize */
	{131, 131}, /* cudaStreamSynchronize */
	{137, 137}, /* cudaEventSynchronize */
	{142, 145}, /* cudaMemset3D … cudaMemcpy3DAsync */
	{160, 163}, /* cudaMemcpyPeer … cudaMemcpy3DPeerAsync */
	{165, 165}, /* cudaDeviceSynchronize */
	{211, 211}, /* cudaLaunchKernel */
	{213, 236}, /* cudaLaunch_ptsz … cudaMemset2DAsync_ptsz */
	{239, 239}, /* cudaStreamSynchronize_ptsz */
	{243, 246}, /* cudaMemset3D_ptds … cudaMemcpy3DAsync_ptsz */
	{249, 250}, /* cudaMemcpy3DPeer_ptds, cudaMemcpy3DPeerAsync_ptsz */
	{269, 270}, /* cudaLaunchCooperativeKernel, _ptsz */
	{272, 272}, /* cudaLaunchCooperativeKernelMultiDevice */
	{311, 312}, /* cudaGraphLaunch, _ptsz */
	{430, 431}, /* cudaLaunchKernelExC, _ptsz */
	{482, 485}, /* cudaMemcpyBatchAsync … cudaMemcpy3DBatchAsync_ptsz, 12.8 */
	{505, 506}, /* __cudaLaunchKernel, _ptsz */
	{509, 512}, /* cudaMemcpyBatchAsync … cudaMemcpy3DBatchAsync_ptsz, 13.0 */
	{534, 534}, /* cudaExecutionCtxSynchronize */
	{554, 557}, /* cudaMemcpyWithAttributesAsync … cudaMemcpy3DWithAttributesAsync_ptsz */
};

static const struct range driver[] = {
	{17, 17}, /* cuCtxSynchronize */
	{43, 82}, /* cuMemcpyHtoD … cu64MemsetD2D32 */
	{115, 117}, /* cuLaunch … cuLaunchGridAsync */
	{121, 121}, /* cuEventSynchronize */
	{126, 126}, /* cuStreamSynchronize */
	{216, 227}, /* cuMemsetD8Async … cu64MemsetD2D32Async */
	{232, 234}, /* cu64Memcpy2D … cu64Memcpy2DAsync */
	{248, 254}, /* cuMemcpy_v2 … cuMemsetD2D32_v2 */
	{276, 293}, /* cuMemcpyHtoD_v2 … cuMemcpyHtoAAsync_v2 */
	{305, 307}, /* cuMemcpy, cuMemcpyAsync, cuLaunchKernel */
	{318, 321}, /* cuMemcpyPeer … cuMemcpy3DPeerAsync */
	{397, 416}, /* cuMemcpyHtoD_v2_ptds … cuMemsetD2D32_v2_ptds */
	{418, 433}, /* cuMemcpyAsync_ptsz … cuMemsetD2D32Async_ptsz */
	{440, 440}, /* cuStreamSynchronize_ptsz */
	{442, 442}, /* cuLaunchKernel_ptsz */
	{477, 478}, /* cuLaunchCooperativeKernel, _ptsz */
	{480, 480}, /* cuLaunchCooperativeKernelMultiDevice */
	{514, 515}, /* cuGraphLaunch, _ptsz */
	{652, 653}, /* cuLaunchKernelEx, _ptsz */
	{776, 779}, /* cuMemcpyBatchAsync … cuMemcpy3DBatchAsync_ptsz */
	{796, 800}, /* cuMemcpyBatchAsync_v2 … cuCtxSynchronize_v2 */
	{819, 819}, /* cuGraphLaunchWithArguments */
	{828, 829}, /* cuSubgridScheduleLaunch, _ptsz */
	{837, 840}, /* cuMemcpyWithAttributesAsync … cuMemcpy3DWithAttributesAsync_ptsz */
};

static const struct range *ranges_of(unsigned int domain, size_t *count)
{
	bool is_runtime = domain == RLS_CUPTI_RUNTIME;

	*count = is_runtime ? sizeof(runtime) / sizeof(*runtime) : sizeof(driver) / sizeof(*driver);
	return is_runtime ? runtime : driver;
}

/* Few and sorted, and the usual ones among the first half: not worth a cleverer search. */
bool rls_call_launches(unsigned int domain, uint64_t cbid)
{
	size_t count;
	const struct range *ranges = ranges_of(domain, &count);

	for (size_t i = 0; i < count && ranges[i].first <= cbid; i++)
		if (cbid <= ranges[i].last)
			return true;
	return false;
}

bool rls_call_launches_graph(unsigned int domain, uint64_t cbid)
{
	if (domain == RLS_CUPTI_RUNTIME)
		return cbid == 311 || cbid == 312;
	return cbid == 514 || cbid == 515 || cbid == 819;
}

unsigned int rls_call_waits(unsigned int domain, uint64_t cbid)
{
	enum { EVENT = 1, STREAM = 3, CONTEXT = 4 }; /* CUPTI's */
	static const struct wait {
		uint16_t cbid;
		uint8_t type;
	} runtime_waits[] =
		{
			{126, CONTEXT}, /* cudaThreadSynchronize */
			{131, STREAM}, /* cudaStreamSynchronize */
			{137, EVENT}, /* cudaEventSynchronize */
			{165, CONTEXT}, /* cudaDeviceSynchronize */
			{239, STREAM}, /* cudaStreamSynchronize_ptsz */
			{534, CONTEXT}, /* cudaExecutionCtxSynchronize */
		},
	  driver_waits[] = {
		  {17, CONTEXT}, /* cuCtxSynchronize */
		  {121, EVENT}, /* cuEventSynchronize */
		  {126, STREAM}, /* cuStreamSynchronize */
		  {440, STREAM}, /* cuStreamSynchronize_ptsz */
		  {800, CONTEXT}, /* cuCtxSynchronize_v2 */
	  };
	bool is_runtime = domain == RLS_CUPTI_RUNTIME;
	const struct wait *waits = is_runtime ? runtime_waits : driver_waits;
	size_t count = is_runtime ? sizeof(runtime_waits) / sizeof(*waits)
				  : sizeof(driver_waits) / sizeof(*waits);

	for (size_t i = 0; i < count; i++)
		if (waits[i].cbid == cbid)
			return waits[i].type;
	return 0;
}

void rls_calls_visit_others(unsigned int domain, void (*visit)(uint32_t cbid, void *context),
			    void *context)
{
	for (uint32_t cbid = 1; cbid < CALLS_MAX; cbid++)
		if (!rls_call_launches(domain, cbid))
			visit(cbid, context);
}
