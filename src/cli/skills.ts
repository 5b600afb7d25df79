/** `parley skills`: what skills there are, what has changed in them, and accepting that. */
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { type FoundSkill, findSkills } from '../skills/find-skills.ts';
import { type AcceptedSkills, readSkillLock, skillLockPath, writeSkillLock } from '../skills/skill-lock.ts';
import { type DoctorCheck, failed, ok, warning } from './doctor/check.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';

/** Lists the skills of all agents. */
export async function listSkills(): Promise<CommandOutput> {
  const config = configForReading();
  const found = await findAll(config, await readSkillLock(skillLockPath(config.dataDir)));
  const lines = found.map((one) => `${one.state.padEnd(8)} ${one.key}  ${describe(one)}`);
  const waiting = found.filter(isWaiting).length;
  if (lines.length === 0) lines.push(`There are no skills. Put one into ${config.dataDir}/skills.`);
  if (waiting > 0) lines.push(`${waiting} off until you accept: ${parleyCommand} skills check`);
  return { result: found.map(publicFacts), lines };
}

/**
 * Shows what is new or changed, or accepts one skill: `digest` is what an earlier call has shown, so that nobody can
 * change it in between.
 */
export async function checkSkills(
  name: string | undefined,
  { accept: digest }: { readonly accept?: string } = {},
): Promise<CommandOutput> {
  const config = configForReading();
  const path = skillLockPath(config.dataDir);
  const accepted = await readSkillLock(path);
  const all = await findAll(config, accepted);
  const found = name === undefined ? all : all.filter((one) => one.key === name || nameOf(one) === name);
  if (name !== undefined && found.length === 0)
    throw new ParleyError('invalid_input', `There is no skill ${name}. See: ${parleyCommand} skills list`);
  if (digest !== undefined) return accept(found, { path, accepted, digest });
  const shown = found.filter(({ state }) => state !== 'on');
  const lines = shown.flatMap((one) => [...linesOf(one), '']);
  if (lines.length === 0) lines.push('Every skill is as you have accepted it.');
  return { result: shown.map(publicFacts), lines, code: shown.length === 0 ? 0 : 1 };
}

/** Names the skills that are off, for `doctor`. */
export async function skillsForDoctor(config: Config): Promise<readonly DoctorCheck[]> {
  const name = 'skills';
  try {
    const found = await findAll(config, await readSkillLock(skillLockPath(config.dataDir)));
    const waiting = found.filter(isWaiting).map(({ key }) => key);
    const refused = found.flatMap((one) => (one.state === 'refused' ? [`${one.key}: ${one.problem}`] : []));
    if (waiting.length + refused.length === 0)
      return found.length === 0 ? [] : [ok(name, `${found.length} on`)];
    const off = waiting.length === 0 ? [] : [`off until you accept them: ${waiting.join(', ')}`];
    return [
      warning(name, [...off, ...refused].join('\n'), `read what they say: ${parleyCommand} skills check`),
    ];
  } catch (error) {
    return [
      failed(name, error instanceof Error ? error.message : String(error), `${parleyCommand} skills check`),
    ];
  }
}

type WaitingSkill = Extract<FoundSkill, { readonly state: 'new' | 'changed' }>;

async function accept(
  found: readonly FoundSkill[],
  lock: { readonly path: string; readonly accepted: AcceptedSkills; readonly digest: string },
): Promise<CommandOutput> {
  const { path, accepted, digest } = lock;
  const wanted = digest.replace(/^sha256-/, '');
  const chosen = found.filter(isWaiting).filter(({ skill }) => skill.digest.startsWith(`sha256-${wanted}`));
  const [one] = chosen;
  if (wanted.length < shownDigits || one === undefined || chosen.length > 1)
    throw new ParleyError(
      'invalid_input',
      `No new or changed skill has the digest ${digest}: it may have changed again. See: ${parleyCommand} skills check`,
    );
  const { key, skill, files } = one;
  const entry = { digest: skill.digest, acceptedAt: new Date().toISOString(), files };
  await writeSkillLock(path, { ...accepted, [key]: entry });
  return { result: publicFacts(one), lines: [`${key} is on: the next message can use it.`] };
}

const shownDigits = 12;

function linesOf(one: FoundSkill): readonly string[] {
  const head = `${one.state}  ${one.key}`;
  if (!isWaiting(one)) return [head, `  ${describe(one)}`];
  const { skill, changes, warning } = one;
  const digest = skill.digest.slice('sha256-'.length).slice(0, shownDigits);
  return [
    head,
    `  ${skill.description}`,
    ...(warning === undefined ? [] : [`  Note: ${warning}.`]),
    ...changes.map((change) => `  ${change}`),
    `  Read its files in ${one.folder}: the agent will follow them. Then accept exactly this version:`,
    `  ${parleyCommand} skills check ${skill.name} --accept ${digest}`,
  ];
}

/** Finds the skills of all agents; those in the data folder belong to all, and are listed once. */
async function findAll(config: Config, accepted: AcceptedSkills): Promise<readonly FoundSkill[]> {
  const all = new Map<string, FoundSkill>();
  for (const { workspace } of config.agents)
    for (const one of await findSkills({ dataDir: config.dataDir, workspace }, accepted))
      if (!all.has(one.folder)) all.set(one.folder, one);
  return [...all.values()];
}

function isWaiting(one: FoundSkill): one is WaitingSkill {
  return one.state === 'new' || one.state === 'changed';
}

function nameOf(one: FoundSkill): string | undefined {
  return one.state === 'refused' ? undefined : one.skill.name;
}

function describe(one: FoundSkill): string {
  return one.state === 'refused' ? one.problem : one.skill.description;
}

/** Returns what programs get. */
function publicFacts(one: FoundSkill) {
  const { key, folder, state } = one;
  if (one.state === 'refused') return { key, folder, state, problem: one.problem };
  const { name, description, digest } = one.skill;
  const changes = isWaiting(one) ? { changes: one.changes } : {};
  return { key, folder, state, name, description, digest, ...changes };
}
