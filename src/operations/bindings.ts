/** Agents that were chosen in chat with `/agent`, for a group or one of its topics. */
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { stripText } from '../logging/redaction.ts';
import { readBindings, removeBinding } from '../store/delivery/bindings.ts';
import { operation, Refusal, type StoreDeps } from './operation.ts';

/** How many are listed, newest first. */
const listed = 1_000;

const conversation = z.string().min(1).max(1_000);
const thread = z.string().max(500);

/** Lists what was chosen. */
export const listBindings = operation({
  name: 'bindings',
  method: 'GET',
  right: 'operator',
  summary: 'Lists the agents that were chosen in chat for a group or a topic, newest first',
  answer: z.object({
    bindings: z
      .array(
        z.object({
          conversation: conversation.describe('`channel/account/conversation`'),
          thread: thread.exactOptional().describe('The topic; absent: the group itself'),
          agent: z.string(),
          setBy: z.string().describe('`channel:id`'),
          setAt: z.int(),
        }),
      )
      .readonly(),
  }),
  run: async ({ store }: StoreDeps) => {
    const bindings = await store.read(readBindings, { limit: listed });
    return {
      bindings: bindings.map(({ conversationKey, thread, agentId, setBy, setAt }) => ({
        conversation: conversationKey,
        ...(thread !== '' && { thread }),
        agent: agentId,
        ...{ setBy, setAt },
      })),
    };
  },
});

/** Takes a choice back. */
export const endBinding = operation({
  name: 'bindings/remove',
  method: 'POST',
  right: 'operator',
  summary: 'Takes back the agent that was chosen in chat for a group or a topic, from the next message on',
  input: z.strictObject({
    conversation: conversation.describe('`channel/account/conversation`, as listed'),
    thread: thread.exactOptional().describe('The topic; absent: the group itself'),
  }),
  answer: z.object({ conversation }),
  refusals: ['not_found'],
  run: async ({ store }: StoreDeps, { conversation, thread = '' }) => {
    const isRemoved = await store.write(removeBinding, { conversationKey: conversation, thread });
    if (isRemoved) return { conversation };
    const place = thread === '' ? conversation : `thread ${thread} of ${conversation}`;
    const message = `No agent was chosen for ${stripText(place)}. See: ${parleyCommand} agents bindings`;
    return new Refusal('not_found', message);
  },
});
