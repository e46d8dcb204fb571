/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The registers of AMD's Instruction-Based Sampling, field by field. Source: AMD's BKDG and PPR of
 * families 10h to 1Ah, MSRC001_1030 to MSRC001_103D; doc/ibs.md says which generation has what.
 *
 * F(type, member, name, first bit, number of bits): a member has the bits of the register, whether
 * they are valid or not. The names are those of the manuals without the prefix Ibs.
 */
#ifndef OP_IBS_FIELDS_H
#define OP_IBS_FIELDS_H

#define OP_IBS_FIELDS_FETCH_CTL(F)                                                                                                 \
	F(uint16_t, max_cnt, "FetchMaxCnt", 0, 16)                                                                                 \
	F(uint16_t, cnt, "FetchCnt", 16, 16)                                                                                       \
	F(uint16_t, lat, "Lat", 32, 16)                                                                                            \
	F(uint8_t, en, "En", 48, 1)                                                                                                \
	F(uint8_t, val, "Val", 49, 1)                                                                                              \
	F(uint8_t, comp, "Comp", 50, 1)                                                                                            \
	F(uint8_t, ic_miss, "IcMiss", 51, 1)                                                                                       \
	F(uint8_t, phy_addr_valid, "PhyAddrValid", 52, 1)                                                                          \
	F(uint8_t, l1_tlb_pg_sz, "L1TlbPgSzEnc", 53, 2)                                                                            \
	F(uint8_t, l1_tlb_miss, "L1TlbMiss", 55, 1)                                                                                \
	F(uint8_t, l2_tlb_miss, "L2TlbMiss", 56, 1)                                                                                \
	F(uint8_t, rand_en, "RandEn", 57, 1)                                                                                       \
	F(uint8_t, l2_miss, "L2Miss", 58, 1)                                                                                       \
	F(uint8_t, l3_miss_only, "L3MissOnly", 59, 1)                                                                              \
	F(uint8_t, oc_miss, "FetchOcMiss", 60, 1)                                                                                  \
	F(uint8_t, l3_miss, "FetchL3Miss", 61, 1)

#define OP_IBS_FIELDS_FETCH_LINAD(F) F(uint64_t, lin_ad, "FetchLinAd", 0, 64)
#define OP_IBS_FIELDS_FETCH_PHYSAD(F) F(uint64_t, phys_ad, "FetchPhysAd", 0, 64)
#define OP_IBS_FIELDS_FETCH_EXTD_CTL(F) F(uint16_t, itlb_refill_lat, "ItlbRefillLat", 0, 16)

#define OP_IBS_FIELDS_OP_CTL(F)                                                                                                    \
	F(uint16_t, max_cnt_lo, "OpMaxCntLo", 0, 16)                                                                               \
	F(uint8_t, l3_miss_only, "L3MissOnly", 16, 1)                                                                              \
	F(uint8_t, en, "En", 17, 1)                                                                                                \
	F(uint8_t, val, "Val", 18, 1)                                                                                              \
	F(uint8_t, cnt_ctl, "CntCtl", 19, 1)                                                                                       \
	F(uint8_t, max_cnt_hi, "OpMaxCntHi", 20, 7)                                                                                \
	F(uint32_t, cur_cnt, "CurCnt", 32, 27)                                                                                     \
	F(uint8_t, ld_lat_thrsh, "LdLatThrsh", 59, 4)                                                                              \
	F(uint8_t, ld_lat_en, "LdLatEn", 63, 1)

#define OP_IBS_FIELDS_OP_RIP(F) F(uint64_t, op_rip, "OpRip", 0, 64)

#define OP_IBS_FIELDS_OP_DATA(F)                                                                                                   \
	F(uint16_t, comp_to_ret, "CompToRetCtr", 0, 16)                                                                            \
	F(uint16_t, tag_to_ret, "TagToRetCtr", 16, 16)                                                                             \
	F(uint8_t, brn_resync, "BrnResync", 32, 1)                                                                                 \
	F(uint8_t, misp_return, "MispReturn", 33, 1)                                                                               \
	F(uint8_t, op_return, "OpReturn", 34, 1)                                                                                   \
	F(uint8_t, brn_taken, "OpBrnTaken", 35, 1)                                                                                 \
	F(uint8_t, brn_misp, "OpBrnMisp", 36, 1)                                                                                   \
	F(uint8_t, brn_ret, "BrnRet", 37, 1)                                                                                       \
	F(uint8_t, rip_invalid, "RipInvalid", 38, 1)                                                                               \
	F(uint8_t, brn_fuse, "BrnFuse", 39, 1)                                                                                     \
	F(uint8_t, microcode, "Microcode", 40, 1)

#define OP_IBS_FIELDS_OP_DATA2(F)                                                                                                  \
	F(uint8_t, data_src_lo, "DataSrcLo", 0, 3)                                                                                 \
	F(uint8_t, rmt_node, "RmtNode", 4, 1)                                                                                      \
	F(uint8_t, cache_hit_st, "CacheHitSt", 5, 1)                                                                               \
	F(uint8_t, data_src_hi, "DataSrcHi", 6, 2)                                                                                 \
	F(uint8_t, strm_st, "StrmSt", 8, 1)                                                                                        \
	F(uint8_t, rmt_socket, "RmtSocket", 9, 1)

#define OP_IBS_FIELDS_OP_DATA3(F)                                                                                                  \
	F(uint8_t, ld_op, "LdOp", 0, 1)                                                                                            \
	F(uint8_t, st_op, "StOp", 1, 1)                                                                                            \
	F(uint8_t, dc_l1_tlb_miss, "DcL1TlbMiss", 2, 1)                                                                            \
	F(uint8_t, dc_l2_tlb_miss, "DcL2TlbMiss", 3, 1)                                                                            \
	F(uint8_t, dc_l1_tlb_hit_2m, "DcL1TlbHit2M", 4, 1)                                                                         \
	F(uint8_t, dc_l1_tlb_hit_1g, "DcL1TlbHit1G", 5, 1)                                                                         \
	F(uint8_t, dc_l2_tlb_hit_2m, "DcL2TlbHit2M", 6, 1)                                                                         \
	F(uint8_t, dc_miss, "DcMiss", 7, 1)                                                                                        \
	F(uint8_t, dc_mis_acc, "DcMisAcc", 8, 1)                                                                                   \
	F(uint8_t, ld_bnk_con, "LdBnkCon", 9, 1)                                                                                   \
	F(uint8_t, st_bnk_con, "StBnkCon", 10, 1)                                                                                  \
	F(uint8_t, st_to_ld_fwd, "StToLdFwd", 11, 1)                                                                               \
	F(uint8_t, st_to_ld_can, "StToLdCan", 12, 1)                                                                               \
	F(uint8_t, wc_mem_acc, "WcMemAcc", 13, 1)                                                                                  \
	F(uint8_t, uc_mem_acc, "UcMemAcc", 14, 1)                                                                                  \
	F(uint8_t, dc_locked_op, "DcLockedOp", 15, 1)                                                                              \
	F(uint8_t, dc_miss_no_mab_alloc, "DcMissNoMabAlloc", 16, 1)                                                                \
	F(uint8_t, dc_lin_addr_valid, "DcLinAddrValid", 17, 1)                                                                     \
	F(uint8_t, dc_phy_addr_valid, "DcPhyAddrValid", 18, 1)                                                                     \
	F(uint8_t, dc_l2_tlb_hit_1g, "DcL2TlbHit1G", 19, 1)                                                                        \
	F(uint8_t, l2_miss, "L2Miss", 20, 1)                                                                                       \
	F(uint8_t, sw_pf, "SwPf", 21, 1)                                                                                           \
	F(uint8_t, mem_width_enc, "OpMemWidth", 22, 4)                                                                             \
	F(uint8_t, open_mem_reqs, "OpDcMissOpenMemReqs", 26, 6)                                                                    \
	F(uint16_t, dc_miss_lat, "DcMissLat", 32, 16)                                                                              \
	F(uint16_t, tlb_refill_lat, "TlbRefillLat", 48, 16)

#define OP_IBS_FIELDS_OP_LINAD(F) F(uint64_t, dc_lin_ad, "DcLinAd", 0, 64)
#define OP_IBS_FIELDS_OP_PHYSAD(F) F(uint64_t, dc_phys_ad, "DcPhysAd", 0, 64)
#define OP_IBS_FIELDS_OP_TARGET(F) F(uint64_t, br_target, "BrTarget", 0, 64)
#define OP_IBS_FIELDS_OP_DATA4(F) F(uint8_t, ld_resync, "LdResync", 0, 1)

/* All fields, the widest first, so that the structs have few holes. */
#define OP_IBS_FIELDS_FETCH(F)                                                                                                     \
	OP_IBS_FIELDS_FETCH_LINAD(F)                                                                                               \
	OP_IBS_FIELDS_FETCH_PHYSAD(F) OP_IBS_FIELDS_FETCH_EXTD_CTL(F) OP_IBS_FIELDS_FETCH_CTL(F)
#define OP_IBS_FIELDS_OP(F)                                                                                                        \
	OP_IBS_FIELDS_OP_RIP(F)                                                                                                    \
	OP_IBS_FIELDS_OP_LINAD(F)                                                                                                  \
	OP_IBS_FIELDS_OP_PHYSAD(F)                                                                                                 \
	OP_IBS_FIELDS_OP_TARGET(F)                                                                                                 \
	OP_IBS_FIELDS_OP_CTL(F)                                                                                                    \
	OP_IBS_FIELDS_OP_DATA(F) OP_IBS_FIELDS_OP_DATA3(F) OP_IBS_FIELDS_OP_DATA2(F) OP_IBS_FIELDS_OP_DATA4(F)

#endif
