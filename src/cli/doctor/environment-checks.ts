import type { Config } from '../../config/config.ts';
import { homeFolder } from '../../config/environment.ts';
import type { Disagreement } from '../agree-with-processes.ts';
import { type AskedStatus, askGateway } from '../ask-gateway.ts';
import { type DoctorCheck, failed, ok, warning } from './check.ts';

/** Checks whether this command sees the same variables as the running processes. */
export function checkEnvironment(differing: readonly Disagreement[]): readonly DoctorCheck[] {
  return differing.map(({ process: { pid, role }, lacking, extra }) => {
    const name = 'environment';
    const who = `the running ${role === 'worker' ? 'worker' : 'gateway'} (process ${pid})`;
    const fix = `run this command in its environment, or put the variables in ${homeFolder()}/.env, which every process reads`;
    if (lacking.length === 0)
      return warning(name, `${who} lacks ${extra.join(', ')} (only set here)`, `restart it, or ${fix}`);
    return warning(
      name,
      `${who} has ${lacking.join(', ')} (only set there); the lines below come from it`,
      fix,
    );
  });
}

/** Asks the running gateway about its model and networks: with different variables, this command could only guess. */
export async function askAboutParts(config: Config): Promise<readonly DoctorCheck[]> {
  const answer = await askGateway(config);
  if (answer.kind !== 'running')
    return [
      warning(
        'gateway',
        "can't be asked about its database, model and networks from here",
        'run this command in its environment',
      ),
    ];
  return partChecks(answer.status);
}

/** Asks the running gateway, if there is one: a broken configuration file only matters at its next start. */
export async function askRunningGateway(config: Config): Promise<readonly DoctorCheck[]> {
  const answer = await askGateway(config);
  return answer.kind === 'running' ? partChecks(answer.status) : [];
}

function partChecks({ model, channels, problems = [] }: AskedStatus): readonly DoctorCheck[] {
  return [
    model.isDemo
      ? warning('model', 'the demo model', 'set ANTHROPIC_API_KEY or OPENAI_API_KEY where the gateway runs')
      : ok('model', `${model.name}, according to the gateway`),
    ...channels.map(({ id, state, detail }) =>
      state === 'trouble'
        ? failed(id, detail, 'fix the cause named above; until then no messages arrive')
        : ok(id, `${state}; ${detail}, according to the gateway`),
    ),
    ...problems.map(({ id, text }) => failed(id, text, "check the gateway's log")),
  ];
}
