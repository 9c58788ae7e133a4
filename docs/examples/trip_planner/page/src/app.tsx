/** The page: conversations, the chosen one, and the trip. The address says which one is shown. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Chat } from "./chat.js";
import { Conversation } from "./conversation.js";
import { useObserved } from "./observable.js";
import { NEW, SessionList } from "./session-list.js";
import { sessions } from "./sessions.js";
import { trip } from "./trip.js";
import { TripView } from "./trip-view.js";

/** Which part a narrow screen shows. */
type Part = "sessions" | "chat" | "trip";

const PARTS: readonly (readonly [Part, string])[] = [
  ["sessions", "Conversations"],
  ["chat", "Chat"],
  ["trip", "Trip"],
];

export function App() {
  const conversation = useAddressed();
  useObserved(conversation, trip);
  const [part, setPart] = useState<Part>("chat");
  const seen = useRef<number | undefined>(undefined);
  const revision = trip.shown?.revision;
  if (part === "trip" || seen.current === undefined) seen.current = revision;
  const news = revision !== seen.current;
  useEffect(() => {
    void sessions.refresh();
    trip.refresh();
  }, []);
  return (
    <div class="page" data-part={part}>
      <header class="top">
        <h1>Trip planner</h1>
        <nav class="parts" aria-label="Parts of the page">
          {PARTS.map(([name, label]) => (
            <button
              key={name}
              type="button"
              aria-pressed={part === name}
              aria-label={name === "trip" && news ? `${label}, changed` : undefined}
              onClick={() => setPart(name)}
            >
              {label}
              {name === "trip" && news && <span class="news" />}
            </button>
          ))}
        </nav>
      </header>
      <SessionList current={conversation.sessionId} onChosen={() => setPart("chat")} />
      <Chat key={conversation.key} conversation={conversation} />
      <TripView />
    </div>
  );
}

/** The conversation that the address names; a new one gets its address once it has an id. */
function useAddressed(): Conversation {
  const [conversation, setConversation] = useState(() => new Conversation(addressed()));
  useEffect(() => {
    const changed = () => {
      const id = addressed();
      setConversation((shown) => (shown.sessionId === id ? shown : new Conversation(id)));
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    conversation.open();
    const end = conversation.subscribe(() => {
      const { sessionId } = conversation;
      // Replaced: going back from here leads to what was there before.
      if (sessionId !== null && sessionId !== addressed()) location.replace(`#${sessionId}`);
    });
    return () => {
      end();
      conversation.close();
    };
  }, [conversation]);
  return conversation;
}

function addressed(): string | null {
  const id = location.hash.slice(1);
  return id === "" || id === NEW ? null : id;
}
