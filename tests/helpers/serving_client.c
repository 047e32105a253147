/* Translates lines with an exported SavedModel, through TensorFlow's C API.

   There is no Python here, and no code of this project: what works here works
   in a server that is written in C++.

   serving_client EXPORT OPS INPUT OUTPUT... < lines

   EXPORT is the folder of one version, OPS tensorflow-text's library of
   SentencePiece ops, INPUT the operation that is fed, and each OUTPUT an
   operation and an index, such as StatefulPartitionedCall:0: translations
   (strings), scores (floats), and whether a line was truncated (bools). All
   lines of the standard input are one batch. Prints a line for each, its parts
   divided by tabs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

enum { MAX_LINES = 4096, NUM_OUTPUTS = 3 };

static void check(const TF_Status* status, const char* what) {
  if (TF_GetCode(status) != TF_OK) {
    fprintf(stderr, "error: %s: %s\n", what, TF_Message(status));
    exit(1);
  }
}

static void free_strings(void* data, size_t size, void* unused) {
  (void)unused;
  TF_TString* strings = data;
  for (size_t n = 0; n < size / sizeof(TF_TString); n++)
    TF_TString_Dealloc(&strings[n]);
  free(data);
}

/* Returns a string tensor [lines of the standard input]. */
static TF_Tensor* read_lines(void) {
  TF_TString* strings = calloc(MAX_LINES, sizeof(TF_TString));
  char* line = NULL;
  size_t capacity = 0;
  ssize_t length;
  int64_t count = 0;
  while (count < MAX_LINES && (length = getline(&line, &capacity, stdin)) > 0) {
    if (line[length - 1] == '\n') length--;
    TF_TString_Init(&strings[count]);
    TF_TString_Copy(&strings[count], line, (size_t)length);
    count++;
  }
  free(line);
  return TF_NewTensor(TF_STRING, &count, 1, strings,
                      (size_t)count * sizeof(TF_TString), free_strings, NULL);
}

/* Returns the operation and the index that "name:index" stands for. */
static TF_Output output_named(TF_Graph* graph, char* name) {
  char* colon = strrchr(name, ':');
  int index = 0;
  if (colon != NULL) {
    index = atoi(colon + 1);
    *colon = '\0';
  }
  TF_Operation* operation = TF_GraphOperationByName(graph, name);
  if (operation == NULL) {
    fprintf(stderr, "error: the graph has no operation %s\n", name);
    exit(1);
  }
  return (TF_Output){operation, index};
}

int main(int argc, char** argv) {
  if (argc != 4 + NUM_OUTPUTS) {
    fprintf(stderr, "usage: %s EXPORT OPS INPUT OUTPUT OUTPUT OUTPUT\n",
            argv[0]);
    return 2;
  }
  TF_Status* status = TF_NewStatus();
  TF_Library* ops = TF_LoadLibrary(argv[2], status);
  check(status, "cannot load the ops");
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(
      options, NULL, argv[1], tags, 1, graph, NULL, status);
  check(status, "cannot load the model");

  TF_Output input = output_named(graph, argv[3]);
  TF_Output outputs[NUM_OUTPUTS];
  for (int n = 0; n < NUM_OUTPUTS; n++)
    outputs[n] = output_named(graph, argv[4 + n]);
  TF_Tensor* lines = read_lines();
  TF_Tensor* results[NUM_OUTPUTS] = {NULL};
  TF_SessionRun(session, NULL, &input, &lines, 1, outputs, results, NUM_OUTPUTS,
                NULL, 0, NULL, status);
  check(status, "cannot translate");

  const TF_TString* texts = TF_TensorData(results[0]);
  const float* scores = TF_TensorData(results[1]);
  const unsigned char* truncated = TF_TensorData(results[2]);
  for (int64_t n = 0; n < TF_Dim(results[0], 0); n++)
    printf("%.*s\t%.6f\t%d\n", (int)TF_TString_GetSize(&texts[n]),
           TF_TString_GetDataPointer(&texts[n]), scores[n], truncated[n]);

  for (int n = 0; n < NUM_OUTPUTS; n++) TF_DeleteTensor(results[n]);
  TF_DeleteTensor(lines);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteLibraryHandle(ops);
  TF_DeleteStatus(status);
  return 0;
}
