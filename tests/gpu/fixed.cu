/* fixed LAUNCHES GRAPHS AWAIT: so many launches, then so many of a graph of four kernels that is
 * captured once. Says "ready", waits for a line of input if AWAIT is 1, works, says as JSON what it did. nvcc links
 * the runtime into it, so that its launches are seen at libcuda alone. */
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#define NODES 4

__global__ void add_one(float *values)
{
	values[threadIdx.x] += 1;
}

static void check(cudaError_t error)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "fixed: %s\n", cudaGetErrorString(error));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int launches = atoi(argv[1]), graphs = atoi(argv[2]);
	cudaGraphExec_t made;
	cudaStream_t stream;
	cudaGraph_t graph;
	float *values, first;
	int got;

	if (argc != 4)
		return 2;
	check(cudaMalloc(&values, 256 * sizeof(*values)));
	check(cudaMemset(values, 0, 256 * sizeof(*values)));
	check(cudaStreamCreate(&stream));
	check(cudaDeviceSynchronize());
	printf("ready\n");
	fflush(stdout);
	while (atoi(argv[3]) && (got = getchar()) != '\n' && got != EOF)
		;
	for (int i = 0; i < launches; i++)
		add_one<<<1, 256, 0, stream>>>(values);
	check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < NODES; i++)
		add_one<<<1, 256, 0, stream>>>(values);
	check(cudaStreamEndCapture(stream, &graph));
#if CUDART_VERSION >= 12000
	check(cudaGraphInstantiate(&made, graph, 0));
#else
	check(cudaGraphInstantiate(&made, graph, NULL, NULL, 0));
#endif
	for (int i = 0; i < graphs; i++)
		check(cudaGraphLaunch(made, stream));
	check(cudaStreamSynchronize(stream));
	check(cudaMemcpy(&first, values, sizeof(first), cudaMemcpyDeviceToHost));
	sleep(1);
	printf("{\"kernels\": %d, \"calls\": %d, \"right\": %s}\n", launches + NODES * graphs,
	       launches + NODES + graphs, first == launches + NODES * graphs ? "true" : "false");
	return 0;
}
