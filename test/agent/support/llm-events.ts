import type { AssistantBlock, LlmMessage, ModelEvent } from '#contracts/model.ts';

/** Returns the assistant message that the loop would build from the events. */
export function playEvents(events: readonly ModelEvent[]): Extract<LlmMessage, { role: 'assistant' }> {
  const content: AssistantBlock[] = [];
  let text = '';
  let thinking = '';
  const calls = new Map<string, { name: string; json: string }>();
  const last = events.at(-1);
  const model = last?.type === 'complete' ? last.model : '';
  for (const event of events) {
    if (event.type === 'content_delta') text += event.text;
    if (event.type === 'content_stop') {
      content.push({ type: 'text', text });
      text = '';
    }
    if (event.type === 'thinking_delta') thinking += event.thinking;
    if (event.type === 'thinking_delta' && event.signature !== undefined) {
      content.push({ type: 'thinking', thinking, signature: event.signature, model });
      thinking = '';
    }
    if (event.type === 'tool_use_start') calls.set(event.id, { name: event.name, json: '' });
    const call = 'id' in event ? calls.get(event.id) : undefined;
    if (event.type === 'tool_use_delta' && call) call.json += event.json;
    if (event.type === 'tool_use_stop' && call) {
      const { id, signature } = event;
      const use = { type: 'tool_use', id, name: call.name, input: JSON.parse(call.json) } as const;
      content.push(signature === undefined ? use : { ...use, signature });
    }
  }
  return { role: 'assistant', content };
}
