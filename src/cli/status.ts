import type { z } from 'zod';
import { localTime } from '#channel-kit/time-text.ts';
import { durationText } from '../client/duration.js';
import type { Config } from '../config/config.ts';
import { listLanes } from '../operations/lanes.ts';
import {
  type AskedStatus,
  askGateway,
  askRunning,
  type RunningGateway,
  requireRunning,
} from './ask-gateway.ts';
import { askProcesses, processLines } from './ask-processes.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';

/**
 * Shows the state of the gateway on this data folder and of the other processes, and the owner's alerts. If only
 * workers run, shows theirs.
 */
export async function showStatus(): Promise<CommandOutput> {
  const config = configForReading();
  const answer = await askGateway(config);
  const gateway = answer.kind === 'away' && answer.hasWorkers ? undefined : requireRunning(answer, config);
  const processes = await askProcesses(config.dataDir);
  const others = processes.filter(({ url }) => url !== gateway?.url).flatMap(processLines);
  if (gateway === undefined) {
    const lines = [`No gateway is running on ${config.dataDir}, only workers.`, ...others];
    return { result: { processes }, lines };
  }
  const lanes = await readBusyLanes(config, gateway);
  return {
    result: { ...gateway.status, processes, ...(lanes && { lanes }) },
    lines: gatewayLines(gateway, [...laneLines(lanes), ...others]),
  };
}

type Lane = z.output<typeof listLanes.answer>['lanes'][number];
type BusyLane = Pick<Lane, 'key' | 'title' | 'state' | 'waitingCount'> & {
  readonly run?: Omit<NonNullable<Lane['run']>, 'kind'>;
};

/** How many pages of 25 lanes are asked for. */
const maxPages = 20;

/** Reads the lanes that are busy; undefined if the gateway can't say. */
async function readBusyLanes(
  config: Config,
  gateway: RunningGateway,
): Promise<readonly BusyLane[] | undefined> {
  const busy: BusyLane[] = [];
  let after: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const from = after === undefined ? {} : { after };
    const answer = await askRunning(gateway, config, listLanes, from).catch(() => undefined);
    if (answer === undefined) return undefined;
    const { lanes, next } = answer;
    busy.push(
      ...lanes.filter(({ run, waitingCount }) => run !== undefined || waitingCount > 0).map(shownLane),
    );
    // Idle lanes come last.
    if (!next?.startsWith('busy:')) return busy;
    after = next;
  }
  return busy;
}

/** Leaves the waiting messages' texts out. */
function shownLane({ key, title, state, run, waitingCount }: Lane): BusyLane {
  const { kind: _, ...facts } = run ?? {};
  return { key, title, state, ...(run && { run: facts as Omit<typeof run, 'kind'> }), waitingCount };
}

function gatewayLines({ url, status }: RunningGateway, others: readonly string[]): readonly string[] {
  const { version, model, startedAt, channels, problems = [], notices = [] } = status;
  return [
    `Parley ${version} at ${url}, since ${localTime(startedAt)}, model ${model.name}`,
    ...channels.map(channelLine),
    ...others,
    ...problems.map(({ text }) => `! ${text}`),
    ...notices.map(({ text, since }) => `! ${text} (since ${localTime(since)})`),
  ];
}

/** How many conversations are listed one by one. */
const listed = 20;

/** Returns the runs and waiting messages: the totals, then each conversation. */
function laneLines(lanes: readonly BusyLane[] | undefined): readonly string[] {
  if (lanes === undefined) return [];
  const runs = lanes.filter(({ run }) => run !== undefined).length;
  const waiting = lanes.reduce((sum, { waitingCount }) => sum + waitingCount, 0);
  const more = lanes.length - listed;
  return [
    `  runs: ${runs}, waiting messages: ${waiting}`,
    ...lanes.slice(0, listed).map(laneLine),
    ...(more > 0 ? [`    and ${more} more conversations`] : []),
  ];
}

function laneLine({ key, title, state, run, waitingCount }: BusyLane): string {
  const facts = [
    ...(run === undefined ? [state] : [`run ${run.id} for ${durationText(run.ageMs)}`]),
    ...(run?.waitsFor === undefined ? [] : [`waits for ${run.waitsFor}`]),
    ...(run?.isStopping === true ? ['stopping'] : []),
    ...(waitingCount === 0 ? [] : [`waiting messages: ${waitingCount}`]),
  ];
  return `    ${title === undefined ? key : `“${title}”`}: ${facts.join(', ')}`;
}

function channelLine({ id, state, detail, since, nextTryAt }: AskedStatus['channels'][number]): string {
  const from = since === undefined ? '' : `, since ${localTime(since)}`;
  const next = nextTryAt === undefined ? '' : `, next try ${localTime(nextTryAt)}`;
  return `  ${id.padEnd(10)} ${state} (${detail})${from}${next}`;
}
