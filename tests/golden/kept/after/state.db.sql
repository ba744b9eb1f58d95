PRAGMA application_id = 0;
PRAGMA user_version = 0;
BEGIN TRANSACTION;
CREATE TABLE batches (
	name VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (name, campaign)
);
INSERT INTO "batches" VALUES('20210301T000000Z-000001-a00aeaf077107f83','words',1,'a00aeaf077107f83','20210301T000000Z','made');
INSERT INTO "batches" VALUES('20210303T000000Z-000001-a00aeaf077107f83','words',1,'a00aeaf077107f83','20210303T000000Z','made');
INSERT INTO "batches" VALUES('20210307T000000Z-000001-a00aeaf077107f83','words',1,'a00aeaf077107f83','20210307T000000Z','made');
CREATE TABLE deleted (
	campaign VARCHAR NOT NULL, 
	folder VARCHAR NOT NULL, 
	batch VARCHAR NOT NULL, 
	complete BOOLEAN NOT NULL, 
	PRIMARY KEY (campaign, folder, batch)
);
CREATE TABLE hops (
	campaign VARCHAR NOT NULL, 
	batch VARCHAR NOT NULL, 
	hop VARCHAR NOT NULL, 
	counts TEXT NOT NULL, 
	folder VARCHAR, 
	finished_at VARCHAR NOT NULL, 
	PRIMARY KEY (campaign, batch, hop)
);
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-a00aeaf077107f83','shuffle','{"accepted": 201, "hop": "shuffle", "received": 201, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}, "reports": {"accepted": 129, "received": 129, "rejected": {}}}}',NULL,'2026-11-23T01:15:26+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-a00aeaf077107f83','release','{"accepted": 72, "hop": "release", "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-23T01:15:30+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-a00aeaf077107f83','discover','{"accepted": 72, "hop": "discover", "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-23T01:15:32+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-a00aeaf077107f83','analyze','{"accepted": 78, "hop": "analyze", "received": 129, "rejected": {"wrong_campaign": 51}, "streams": {"reports": {"accepted": 78, "received": 129, "rejected": {"wrong_campaign": 51}}}}',NULL,'2026-11-23T01:15:34+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-a00aeaf077107f83','shuffle','{"accepted": 60, "hop": "shuffle", "received": 60, "rejected": {}, "streams": {"reports": {"accepted": 60, "received": 60, "rejected": {}}}}',NULL,'2026-11-23T01:15:36+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-a00aeaf077107f83','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T01:15:36+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-a00aeaf077107f83','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T01:15:36+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-a00aeaf077107f83','analyze','{"accepted": 60, "hop": "analyze", "received": 60, "rejected": {}, "streams": {"reports": {"accepted": 60, "received": 60, "rejected": {}}}}',NULL,'2026-11-23T01:15:36+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-a00aeaf077107f83','shuffle','{"accepted": 54, "hop": "shuffle", "received": 54, "rejected": {}, "streams": {"reports": {"accepted": 54, "received": 54, "rejected": {}}}}',NULL,'2026-11-23T01:15:38+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-a00aeaf077107f83','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T01:15:38+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-a00aeaf077107f83','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-23T01:15:38+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-a00aeaf077107f83','analyze','{"accepted": 0, "hop": "analyze", "received": 54, "rejected": {"below_minimum": 3, "wrong_campaign": 51}, "streams": {"reports": {"accepted": 0, "received": 54, "rejected": {"below_minimum": 3, "wrong_campaign": 51}}}}',NULL,'2026-11-23T01:15:39+00:00');
CREATE TABLE hushcount_state (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "hushcount_state" VALUES(4);
CREATE TABLE manifests (
	path VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	seconds INTEGER NOT NULL, 
	collector VARCHAR NOT NULL, 
	authentication VARCHAR NOT NULL, 
	refused TEXT NOT NULL, 
	damaged INTEGER NOT NULL, 
	PRIMARY KEY (path)
);
INSERT INTO "manifests" VALUES('words/000001-a00aeaf077107f83/20210301T000000Z/one.manifest.json','words',1,'a00aeaf077107f83','20210301T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-a00aeaf077107f83/20210301T000000Z/two.manifest.json','words',1,'a00aeaf077107f83','20210301T000000Z',86400,'two','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-a00aeaf077107f83/20210302T000000Z/one.manifest.json','words',1,'a00aeaf077107f83','20210302T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-a00aeaf077107f83/20210303T000000Z/one.manifest.json','words',1,'a00aeaf077107f83','20210303T000000Z',86400,'one','none','{}',0);
INSERT INTO "manifests" VALUES('words/000001-a00aeaf077107f83/20210307T000000Z/one.manifest.json','words',1,'a00aeaf077107f83','20210307T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-a00aeaf077107f83/20210311T000000Z/one.manifest.json','words',1,'a00aeaf077107f83','20210311T000000Z',86400,'one','client-token','{}',0);
CREATE TABLE runs (
	token BIGINT NOT NULL, 
	owner VARCHAR NOT NULL, 
	at VARCHAR
);
INSERT INTO "runs" VALUES(1,'1bfc64b9bcee94a5','2026-11-23T01:15:22.901852+00:00');
CREATE TABLE segments (
	path VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	records BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	digest VARCHAR NOT NULL, 
	authentication VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	batch VARCHAR, 
	reason VARCHAR, 
	PRIMARY KEY (path)
);
INSERT INTO "segments" VALUES('words/000001-a00aeaf077107f83/20210301T000000Z/reports/one-000000.blocks','words',1,'a00aeaf077107f83','20210301T000000Z','reports',72,7696,'9fec140e2b9149b9a49038bb68be189cc3783ecddbd954a38bf40296ef079d86','client-token','batched','20210301T000000Z-000001-a00aeaf077107f83',NULL);
INSERT INTO "segments" VALUES('words/000001-a00aeaf077107f83/20210301T000000Z/discovery/one-000000.blocks','words',1,'a00aeaf077107f83','20210301T000000Z','discovery',72,15832,'e2e04306813ea70e099d7eaad5dd1c7b5025c2d3bc47fee574f399f6ddb76242','client-token','batched','20210301T000000Z-000001-a00aeaf077107f83',NULL);
INSERT INTO "segments" VALUES('words/000001-a00aeaf077107f83/20210301T000000Z/reports/two-000000.blocks','words',1,'a00aeaf077107f83','20210301T000000Z','reports',57,6121,'fb559c83cf88b48b5c2fe0a1f4dc8a7e8d46963495ea26da64103601d1aaa846','client-token','batched','20210301T000000Z-000001-a00aeaf077107f83',NULL);
INSERT INTO "segments" VALUES('words/000001-a00aeaf077107f83/20210302T000000Z/reports/one-000000.blocks','words',1,'a00aeaf077107f83','20210302T000000Z','reports',9,1081,'5df64c5a0ab1fa5cea1f22af15e2d9505c814882ae88b1467cb1c401f462ef00','client-token','batched','20210303T000000Z-000001-a00aeaf077107f83',NULL);
INSERT INTO "segments" VALUES('words/000001-a00aeaf077107f83/20210302T000000Z/discovery/one-000000.blocks','words',1,'a00aeaf077107f83','20210302T000000Z','discovery',9,2098,'a7eefd006593816792ae0f63fc962afec37009a540d45e0b39f7d6015e555314','client-token','too_late',NULL,'grace ended before 20210307T000000Z closed');
INSERT INTO "segments" VALUES('words/000001-a00aeaf077107f83/20210303T000000Z/reports/one-000000.blocks','words',1,'a00aeaf077107f83','20210303T000000Z','reports',51,5491,'03c5e9cdbfd13004f74b2543e129c85aa8e6e35e044b2b1b4afd3952b80e7c03','none','batched','20210303T000000Z-000001-a00aeaf077107f83',NULL);
INSERT INTO "segments" VALUES('words/000001-a00aeaf077107f83/20210307T000000Z/reports/one-000000.blocks','words',1,'a00aeaf077107f83','20210307T000000Z','reports',54,5806,'f789c8da09d0e4d1bb0a8b1a5b407da721c5ae3ddf15c874fb85ca6e7fc48fc9','client-token','batched','20210307T000000Z-000001-a00aeaf077107f83',NULL);
INSERT INTO "segments" VALUES('words/000001-a00aeaf077107f83/20210311T000000Z/reports/one-000000.blocks','words',1,'a00aeaf077107f83','20210311T000000Z','reports',12,1396,'0bf7b4529f2e6708ff4dbd00114aa6a131856c1f18b113a259032b77f08c5a39','client-token','too_late',NULL,'grace ended, and no window closed');
CREATE TABLE windows (
	campaign VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	closed_at VARCHAR NOT NULL, 
	seconds INTEGER NOT NULL, 
	PRIMARY KEY (campaign, window)
);
INSERT INTO "windows" VALUES('words','20210301T000000Z','2026-11-23T01:15:22.901852+00:00',86400);
INSERT INTO "windows" VALUES('words','20210302T000000Z','2026-11-23T01:15:22.901852+00:00',86400);
INSERT INTO "windows" VALUES('words','20210303T000000Z','2026-11-23T01:15:22.901852+00:00',86400);
INSERT INTO "windows" VALUES('words','20210307T000000Z','2026-11-23T01:15:22.901852+00:00',86400);
INSERT INTO "windows" VALUES('words','20210311T000000Z','2026-11-23T01:15:22.901852+00:00',86400);
COMMIT;
