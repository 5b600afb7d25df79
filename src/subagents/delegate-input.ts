/**
 * Arguments of `delegate`. Models get nested arguments wrong in many ways: what can only have one meaning is repaired,
 * everything else is refused with a sentence that names the field.
 */
import { z } from 'zod';
import { coordinatorItself, failurePolicySchema, subtaskIdPattern } from '#contracts/task.ts';
import { readInput } from '../agent/call-input.ts';

const subtaskFields = {
  id: z
    .string()
    .trim()
    .regex(subtaskIdPattern, 'use up to 40 letters, digits, - and _, for example "compare-prices"')
    .describe('A short name, unique in this graph, for example compare-prices.'),
  agent: z
    .string()
    .trim()
    .min(1)
    .describe(`Id of the agent that does it, or ${coordinatorItself} to keep it.`),
  instructions: z
    .string()
    .trim()
    .min(1)
    .max(32_000)
    .describe('Everything its agent needs: it sees only this and the results of what it depends on.'),
  dependsOn: z
    .array(z.string().trim())
    .default([])
    .transform((ids) => [...new Set(ids)])
    .describe('Ids of the subtasks whose results it reads; none: it starts at once.'),
  expected: z.string().trim().min(1).max(2_000).optional().describe('What its result must contain.'),
  onFailure: failurePolicySchema
    .default('fail')
    .describe('fail: the task fails. retry: two more tries first. skip: the others go on without it.'),
  timeoutSeconds: z.int().min(1).max(86_400).optional().describe('A try is stopped after this time.'),
};

const knownFields = Object.keys(subtaskFields).join(', ');

/** Schema of the arguments. */
export const delegateInputSchema = z.object({
  title: z.string().trim().min(1).max(120).describe('The whole task in a few words, for people to read.'),
  subtasks: z
    .array(
      z.strictObject(subtaskFields, {
        error: (issue) =>
          issue.code === 'unrecognized_keys'
            ? `unknown field ${issue.keys.join(', ').slice(0, 64)}; a subtask has ${knownFields}`
            : undefined,
      }),
    )
    .min(1)
    .max(1_000),
});

/** The arguments, checked. */
export type DelegateRequest = z.infer<typeof delegateInputSchema>;

/** Repairs the arguments where they can only have one meaning. */
export function repairDelegateInput(raw: unknown): unknown {
  if (!isRecord(raw)) return raw;
  const subtasks = asList(raw.subtasks);
  return { ...raw, subtasks: Array.isArray(subtasks) ? subtasks.map(repairSubtask) : subtasks };
}

/** A list written as JSON is that list, and one object is a list of one. */
function asList(value: unknown): unknown {
  const written = fromJson(value);
  if (Array.isArray(written)) return written;
  return isRecord(written) ? [written] : value;
}

/** Some models fill in every field that they don't use. */
function repairSubtask(raw: unknown): unknown {
  if (!isRecord(raw)) return raw;
  const filled = Object.entries(raw).filter(([, value]) => value !== null && value !== '');
  return Object.fromEntries(filled.map(([name, value]) => [name, repairField(name, value)]));
}

function repairField(name: string, value: unknown): unknown {
  if (name === 'id') return asId(value);
  if (name === 'dependsOn') return asIds(value);
  const isLines = name === 'instructions' && Array.isArray(value) && value.every(isText);
  return isLines ? value.join('\n') : value;
}

function asIds(value: unknown): unknown {
  const written = fromJson(value);
  if (Array.isArray(written)) return written.filter((id) => id !== null && id !== '').map(asId);
  const id = asId(value);
  return isText(id) ? [id] : value;
}

function asId(value: unknown): unknown {
  return Number.isSafeInteger(value) ? String(value) : value;
}

/** Returns what a text says that is the JSON of a list or an object; everything else as it is. */
function fromJson(value: unknown): unknown {
  if (!isText(value) || !/^\s*[[{]/.test(value)) return value;
  try {
    return readInput(value);
  } catch {
    return value;
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
