/** Tabs of one browser tell each other which conversation has changed. */

const channel = new BroadcastChannel("rungent-trip-planner");

export function tellTabs(sessionId: string): void {
  channel.postMessage(sessionId);
}

/** Calls `heard` for each change of another tab, until the function that this gives is called. */
export function onTabs(heard: (sessionId: string) => void): () => void {
  const listener = ({ data }: MessageEvent<string>) => heard(data);
  channel.addEventListener("message", listener);
  return () => channel.removeEventListener("message", listener);
}
