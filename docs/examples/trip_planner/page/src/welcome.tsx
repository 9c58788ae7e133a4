/** What an empty conversation shows: a prompt for each thing that the assistant can do. */

const IDEAS: readonly (readonly [what: string, text: string])[] = [
  ["Tools, step by step", "Move Asakusa Temple to day 2, then show my trip"],
  ["A question with options", "Move the museum to day 2"],
  ["A question in words", "Rename my trip"],
  ["A form", "Set my preferences"],
  ["A form of a tool", "Set a budget"],
  ["An approval", "Delete day 3"],
  ["Work in the background", "Optimise day 1"],
  ["An import with questions", "Day 1: Ueno Park, Sushi Dai\nDay 2: museum, Meiji Shrine"],
  ["What else it understands", "What can you do?"],
];

interface WelcomeProps {
  readonly disabled: boolean;
  readonly send: (text: string) => void;
}

export function Welcome({ disabled, send }: WelcomeProps) {
  return (
    <div class="welcome">
      <h3>What shall change on your trip?</h3>
      <p>Write it below, or try one of these. Nothing is deleted without your approval.</p>
      <ul class="ideas">
        {IDEAS.map(([what, text]) => (
          <li key={text}>
            <button type="button" class="idea" disabled={disabled} onClick={() => send(text)}>
              <span class="idea-what">{what}</span>
              <span class="idea-text">{text}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
