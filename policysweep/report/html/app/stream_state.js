// What is shown, kept in the part of the address after "#", so that every view has a link:
//   #sisters                        a section of the report
//   #streams                        the first stream
//   #stream=ID                      what a stream learnt
//   #stream=ID&entry=NAME           how an entry of its bank came to read as it does
//   #stream=ID&task=N               the task at a position, counted from 0, beside that of another method
//   #stream=ID&task=N&beside=ARM    beside the arm at a position of the index; "alone" for none

export function readStreamState() {
  const found = new URLSearchParams(location.hash.slice(1));
  const task = found.get("task");
  return {
    viewer: found.has("streams") || found.has("stream"),
    stream: found.get("stream") ?? "",
    entry: found.get("entry"),
    task: task === null ? null : Number(task),
    beside: found.get("beside") ?? "",
  };
}

export function streamAddress({ stream, entry, task, beside }) {
  const kept = new URLSearchParams({ stream });
  if (entry != null) kept.set("entry", entry);
  if (task != null) kept.set("task", task);
  if (beside) kept.set("beside", beside);
  return `#${kept}`;
}
