import { SIGNATURE_FILE, signedStatement } from '@ambit/capability';
import { fault, pluginRegistry, type FileEntry } from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { createPublicKey, verify } from 'node:crypto';
import type { PluginRegistryConfig } from './config.js';
import type { Signature } from './domain/checksums.js';
import { PublisherRepository } from './publisher.repository.js';

/** Who is proven to have made a package: a publisher by one of their keys, or nobody. `claims` is a key that is not trusted. */
export interface Signer {
  readonly signedBy: string | null;
  readonly signingKey: string | null;
  readonly claims: string | null;
}

/** Says whether a package is its publisher’s, and whether one that is nobody’s may be installed. */
@Injectable()
export class VerificationService {
  constructor(
    @Inject(PublisherRepository) private readonly publishers: PublisherRepository,
    @Inject(CONFIG) private readonly config: PluginRegistryConfig,
  ) {}

  /** Throws PLUGIN_INVALID where the files are not those that a trusted key signed. */
  async signerOf(tree: readonly FileEntry[], signature: Signature | undefined): Promise<Signer> {
    const known = signature === undefined ? undefined : await this.publishers.find(signature.key);
    if (signature === undefined || known === undefined) return { signedBy: null, signingKey: null, claims: signature?.key ?? null };
    if (!verify(null, Buffer.from(signedStatement(tree)), publicKeyOf(known.publicKey), Buffer.from(signature.signature, 'base64')))
      throw fault(pluginRegistry.installPlugin, 'PLUGIN_INVALID', {
        path: SIGNATURE_FILE,
        reason: `the files are not those that ${known.publisher} signed`,
      });
    return { signedBy: known.publisher, signingKey: known.keyId, claims: null };
  }

  /** Throws PLUGIN_UNTRUSTED where a package that nobody, or not the one who is asked for, is proven to have made is refused. */
  admit({ signedBy, claims }: Signer, asked: { readonly unsigned: 'allow' | 'refuse'; readonly publisher?: string | undefined }): void {
    const { unsigned, publisher = signedBy } = asked;
    if (publisher !== signedBy)
      throw untrusted(`it is to be signed by ${publisher ?? 'nobody'}, and is signed by ${signedBy ?? 'nobody who is trusted'}`);
    if (signedBy !== null || (unsigned === 'allow' && this.config.AMBIT_PLUGIN_UNSIGNED !== 'refuse')) return;
    throw untrusted(claims === null ? 'it has no signature' : `it is signed with the key ${claims}, which no trusted publisher has`);
  }

  /** Throws PLUGIN_UNTRUSTED where a package would take the place of one of another publisher. */
  succeed({ signedBy }: Signer, before: { readonly signedBy: string | null }): void {
    if (before.signedBy === null || before.signedBy === signedBy) return;
    throw untrusted(`what is installed was signed by ${before.signedBy}, and this is not; uninstall that first`);
  }

  /** Why what is installed is not trusted any more; null where it is, or never had to be. */
  async problemOf({
    signedBy,
    signingKey,
  }: {
    readonly signedBy: string | null;
    readonly signingKey: string | null;
  }): Promise<string | null> {
    if (signingKey === null || (await this.publishers.find(signingKey)) !== undefined) return null;
    return `the key of ${signedBy ?? 'its publisher'} that signed it is not trusted any more`;
  }
}

/** A raw ed25519 key of 32 bytes in base64. */
function publicKeyOf(base64: string) {
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(base64, 'base64').toString('base64url') }, format: 'jwk' });
}

function untrusted(reason: string) {
  return fault(pluginRegistry.installPlugin, 'PLUGIN_UNTRUSTED', { reason });
}
