import type { Config } from '../config/config.ts';
import { createInboundPolicy, type InboundPolicy } from '../inbound/inbound-policy.ts';
import type { GatewayRoleParts } from './gateway-role.ts';
import type { StageDeps } from './stage-deps.ts';

type LiveParts = { readonly policy: InboundPolicy; readonly gatewayRole: GatewayRoleParts | undefined };

/**
 * Creates the function that puts newly read settings into force, as far as `compareSettings` reports them as applied.
 * The stages hold the policy object itself, so it is changed in place, between two decisions.
 */
export function settingsApplier(
  { config, texts }: Pick<StageDeps, 'config' | 'texts'>,
  { policy, gatewayRole }: LiveParts,
): (config: Config) => void {
  let { perSenderPerMinute } = config.rateLimit;
  return (next) => {
    // The time zone waits for a restart, too.
    const { rateLimit, timeZone: _, ...compiled } = createInboundPolicy(next, texts);
    // A new limit forgets who is flooding, so it is only created when the setting has changed.
    const isNewLimit = next.rateLimit.perSenderPerMinute !== perSenderPerMinute;
    perSenderPerMinute = next.rateLimit.perSenderPerMinute;
    // These settings wait for a restart.
    const { defaultAgent, agentIds, dmScope } = policy;
    const groups = { ...compiled.groups, contextLimit: policy.groups.contextLimit };
    Object.assign(policy, compiled, { defaultAgent, agentIds, dmScope, groups }, isNewLimit && { rateLimit });
    gatewayRole?.owners.splice(0, gatewayRole.owners.length, ...next.owners);
    gatewayRole?.allowedHosts.splice(0, gatewayRole.allowedHosts.length, ...next.allowedHosts);
  };
}
