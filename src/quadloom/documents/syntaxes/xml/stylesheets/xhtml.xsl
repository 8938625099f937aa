<?xml version="1.0" encoding="UTF-8"?>
<!-- XHTML as RDF in the vocabularies of MultiCrawler's transformation: title, mail addresses, images, and links with their
     anchor texts, in RDFS, Dublin Core and FOAF. The crawl says the same natively (quadloom/syntaxes/html/page.py); this
     stylesheet is for use on its own and as a pattern. -->
<xsl:stylesheet version="1.0"
    xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:ql="urn:quadloom:xslt"
    xmlns:h="http://www.w3.org/1999/xhtml"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
    xmlns:dcterms="http://purl.org/dc/terms/"
    xmlns:foaf="http://xmlns.com/foaf/0.1/"
    exclude-result-prefixes="ql h">
  <xsl:param name="url"/>
  <xsl:variable name="base">
    <xsl:choose>
      <xsl:when test="/h:html/h:head/h:base/@href"><xsl:value-of select="ql:resolve(/h:html/h:head/h:base/@href, $url)"/></xsl:when>
      <xsl:otherwise><xsl:value-of select="$url"/></xsl:otherwise>
    </xsl:choose>
  </xsl:variable>

  <xsl:template match="/">
    <rdf:RDF>
      <rdf:Description rdf:about="{$url}">
        <xsl:if test="normalize-space(h:html/h:head/h:title)">
          <dcterms:title>
            <xsl:if test="h:html/@xml:lang"><xsl:copy-of select="h:html/@xml:lang"/></xsl:if>
            <xsl:value-of select="normalize-space(h:html/h:head/h:title)"/>
          </dcterms:title>
        </xsl:if>
        <xsl:for-each select="//h:a[starts-with(@href, 'mailto:')]">
          <foaf:mbox rdf:resource="{normalize-space(@href)}"/>
        </xsl:for-each>
        <xsl:for-each select="//h:img[@src]">
          <foaf:depiction rdf:resource="{ql:resolve(@src, $base)}"/>
        </xsl:for-each>
        <xsl:apply-templates select="//h:a[@href]" mode="reference"/>
      </rdf:Description>
      <xsl:apply-templates select="//h:a[@href]" mode="label"/>
    </rdf:RDF>
  </xsl:template>

  <xsl:template match="h:a[starts-with(@href, 'mailto:') or starts-with(@href, 'javascript:')]" mode="reference"/>
  <xsl:template match="h:a" mode="reference">
    <dcterms:references rdf:resource="{ql:resolve(@href, $base)}"/>
  </xsl:template>

  <xsl:template match="h:a[starts-with(@href, 'mailto:') or starts-with(@href, 'javascript:')]" mode="label"/>
  <xsl:template match="h:a" mode="label">
    <xsl:if test="normalize-space(.)">
      <rdf:Description rdf:about="{ql:resolve(@href, $base)}">
        <rdfs:label><xsl:value-of select="normalize-space(.)"/></rdfs:label>
      </rdf:Description>
    </xsl:if>
  </xsl:template>
</xsl:stylesheet>
